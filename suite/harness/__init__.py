"""The evaluation path: from the text of a program to its verdict. Knows no author."""
