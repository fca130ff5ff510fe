"""Who executes the sweeps: processes of this machine (`local`), or the tasks of a Ray cluster (`ray`)."""
