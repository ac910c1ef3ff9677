"""The decomposition: reductions, closed-form and LP recourse, master, certificate, explanation."""
