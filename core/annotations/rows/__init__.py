"""The declarations of annotations, one module for each part of the language."""
