# SPDX-License-Identifier: Apache-2.0
# fish completion for layac

set -l commands predict info tokenize export probe inspect help

complete -c layac -f
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a predict -d 'Answer questions about a state'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a info -d 'Print facts of a checkpoint'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a tokenize -d 'Print the token ids of a text'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a export -d 'Write a Core ML package of a checkpoint'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a probe -d 'The same as export'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a inspect -d 'Describe, check or compare Core ML packages'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a help -d 'Explain a command'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version'
complete -c layac -n '__fish_seen_subcommand_from help' -a 'predict info tokenize export probe inspect'
complete -c layac -l help -d 'Print help'

complete -c layac -n '__fish_seen_subcommand_from predict info tokenize export probe' -l model -x -a '(__fish_complete_directories)' -d 'Checkpoint directory'
complete -c layac -n '__fish_seen_subcommand_from predict' -l pretty -d 'Indent the JSON'

complete -c layac -n '__fish_seen_subcommand_from predict' -l state -x -d 'State as plain text'
complete -c layac -n '__fish_seen_subcommand_from predict' -l state-file -r -F -d 'Plain text file with the state'
complete -c layac -n '__fish_seen_subcommand_from predict' -l state-json -x -d 'State as a JSON value'
complete -c layac -n '__fish_seen_subcommand_from predict' -l state-json-file -r -F -d 'JSON file with the state'
complete -c layac -n '__fish_seen_subcommand_from predict' -l questions -r -F -d 'Questions as JSON or a file'
complete -c layac -n '__fish_seen_subcommand_from predict' -l table -d 'Print a table'
complete -c layac -n '__fish_seen_subcommand_from predict' -l raw -d 'Add logits'
complete -c layac -n '__fish_seen_subcommand_from predict' -l state-token-counts -d 'Add the token counts of the state'
complete -c layac -n '__fish_seen_subcommand_from predict' -l threads -x -d 'Number of threads'
complete -c layac -n '__fish_seen_subcommand_from predict' -l max-len -x -d 'Longest row in tokens'
complete -c layac -n '__fish_seen_subcommand_from predict' -l head-max-len -x -d 'Budget of question and options in tokens'
complete -c layac -n '__fish_seen_subcommand_from predict' -l min-confidence -x -d 'Abstain below this confidence'
complete -c layac -n '__fish_seen_subcommand_from predict' -l lang -x -d 'Language of the state'
complete -c layac -n '__fish_seen_subcommand_from predict' -l lang-temperatures -r -F -d 'Temperatures by language, JSON or a file'
complete -c layac -n '__fish_seen_subcommand_from predict' -l precision -x -a 'float double' -d 'Arithmetic'

complete -c layac -n '__fish_seen_subcommand_from info' -l hashes -d 'Add the SHA-256 of every file'

complete -c layac -n '__fish_seen_subcommand_from tokenize' -l tokenizer -r -F -d 'tokenizer.json'
complete -c layac -n '__fish_seen_subcommand_from tokenize' -l text -x -d 'Text'
complete -c layac -n '__fish_seen_subcommand_from tokenize' -l file -r -F -d 'Text file'
complete -c layac -n '__fish_seen_subcommand_from tokenize' -l lines -d 'Tokenize each line by itself'
complete -c layac -n '__fish_seen_subcommand_from tokenize' -l tokens -d 'Print the spelling of each token'

complete -c layac -n '__fish_seen_subcommand_from export probe' -l source -x -a '(__fish_complete_directories)' -d 'Checkpoint directory'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l output -x -a '(__fish_complete_directories)' -d 'Directory to make'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l kind -x -a 'body layer mlp' -d 'What to export'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l length -x -d 'Tokens of an input'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l graph -x -a 'per-head lean' -d 'Form of the graph'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l precision -x -a 'fp16 fp32' -d 'Arithmetic'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l markers -x -d 'Marker slots'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l layer -x -d 'Encoder layer of the kinds layer and mlp'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l standalone -d 'Copy the weights of the host, configuration and tokenizer'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l weights-sha256 -x -d 'Expected SHA-256 of model.safetensors'
complete -c layac -n '__fish_seen_subcommand_from export probe' -l threads -x -d 'Number of threads'

complete -c layac -n '__fish_seen_subcommand_from inspect' -a '(__fish_complete_directories)' -d 'Package'
complete -c layac -n '__fish_seen_subcommand_from inspect' -l ops -d 'List every operation'
complete -c layac -n '__fish_seen_subcommand_from inspect' -l tree -d 'Print a tree'
complete -c layac -n '__fish_seen_subcommand_from inspect' -l json -d 'Print JSON'
complete -c layac -n '__fish_seen_subcommand_from inspect' -l verify -d 'Check the package'
complete -c layac -n '__fish_seen_subcommand_from inspect' -l diff -d 'Compare two packages'
