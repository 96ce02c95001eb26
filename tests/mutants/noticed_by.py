"""The tests that should notice a mutant, named as make builds them below build/tests."""
UNIT = "unit/test_{}".format
CONTRACT = "contract/test_{}".format
SIM = "sim/test_sim"
SCALE = "scale/scale"
