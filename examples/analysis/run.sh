# A search from its histograms to its results, by the command. Each line can be typed by itself in
# the folder that has examples/, and the tutorial docs/tutorials/analysis.md explains it.
set -e

# Build and check the workspace.
python examples/analysis/make_histograms.py
nextstat build examples/analysis/config.yml --summary -o workspace.json
nextstat check workspace.json --blind SR --summary -o check.json

# Fit the control regions, and predict the others.
nextstat fit workspace.json --fit-channels 'CR_*' --fix mu=0 --covariance --summary -o cr.json
nextstat gof workspace.json --from cr.json --fit-channels VR --summary -o validation.json
nextstat yields workspace.json --from cr.json --blind SR --summary -o prediction.json
nextstat report workspace.json --from cr.json --blind SR --mask 'CR_*' --summary -o blinded.json
nextstat limit workspace.json --asimov-from cr.json --set mu=0 --summary -o expected.json

# Look at the data of the signal region.
nextstat fit workspace.json --minos --covariance --summary -o fit.json
nextstat gof workspace.json --summary -o gof.json
nextstat ranking workspace.json --from fit.json --top 6 --group 'jets=JES,JER' --group 'theory=*_theory,*_scale,*_generator' --group 'MC=staterror_*' --summary -o ranking.json
nextstat scan workspace.json --start 0 --stop 3 --points 7 --summary -o scan.json
nextstat significance workspace.json --summary -o significance.json
nextstat limit workspace.json --summary -o limit.json
nextstat hypotest-toys workspace.json --test-stat q0 --n-toys 10000 --n-toys-b 1000 --seed 1 --summary -o toys.json

# Publish.
nextstat yields workspace.json --group 'others=diboson,fakes' --summary -o yields.json
nextstat hepdata yields.json fit.json limit.json significance.json ranking.json scan.json --workspace workspace.json --edges SR=200,300,400,500,600,700,800,900,1000 --keyword cmenergies=13000 --comment 'An invented search.' -o record --archive record.tar.gz
