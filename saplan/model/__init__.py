"""The paper's boxes, one file each."""
