"""The registry of transformation kinds (`kinds.py`), and the steps that propose them."""
