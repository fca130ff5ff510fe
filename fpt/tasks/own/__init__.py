"""A person's own data, npz:PATH, folder:PATH and csv:PATH: here they come in, and what is wrong with them is told here.
Nothing is downloaded, and nothing is unpickled."""
