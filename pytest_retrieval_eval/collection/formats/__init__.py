"""Files and tables: bytes and lines, rows, columns of ids and numbers, read by the million and written whole."""
