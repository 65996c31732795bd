//! Handles: numbers given to programs, and the tables that say what they stand for.
