"""Should *you* freeze? Your data and your model, in the time that you have (`fpt advise`).

`request` says what is wanted and refuses what cannot be; `schedule` fits steps and seeds to the time; `baselines` are
the numbers to beat; `work` runs two ordinary studies; `verdict` reads them; `words` and `report` say it; `keep` keeps
the winner.
"""
