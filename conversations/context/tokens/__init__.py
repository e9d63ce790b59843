"""How many tokens text, images and documents are likely to cost."""
