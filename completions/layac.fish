# SPDX-License-Identifier: Apache-2.0
# fish completion for layac

set -l commands predict info tokenize help

complete -c layac -f
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a predict -d 'Answer questions about a state'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a info -d 'Print facts of a checkpoint'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a tokenize -d 'Print the token ids of a text'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -a help -d 'Explain a command'
complete -c layac -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version'
complete -c layac -n '__fish_seen_subcommand_from help' -a 'predict info tokenize'
complete -c layac -l help -d 'Print help'

complete -c layac -n '__fish_seen_subcommand_from predict info tokenize' -l model -x -a '(__fish_complete_directories)' -d 'Checkpoint directory'
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
