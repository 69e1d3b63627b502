-- Token counts are in a file of their own.
DROP TABLE count;
