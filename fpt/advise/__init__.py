"""Should *you* freeze? Your data and your model, in the time that you have (`fpt advise`).

`request` says what is wanted and refuses what cannot be; `baselines` are the numbers to beat; `work` runs two ordinary
studies, the probe first, and `schedule` fits steps and seeds of what trains longer to the time; `verdict` reads them,
by `metrics`; `words` and `report` say it; `keep` keeps the winner.
"""
