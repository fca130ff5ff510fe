"""Figures and tables that one page of the book alone shows: a module a page, named after it."""
