"""A model of the protocol by which tables are written, explored state by state.

`world` is what there is, `rules` what the protocol does and what a broken variant leaves out. `turns`,
`filling`, `publishing`, `collecting` and `joining` are the steps, one effect each, in the order of the code.
`invariants` says what must hold, `explorer` visits every state, `scenarios` what is explored.
"""
