# SPDX-License-Identifier: Apache-2.0
# bash completion for layac

_layac()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local words="" files=no

    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        words="predict info tokenize export probe inspect reference validate benchmark palettize help --version --help"
    else
        [[ $command$previous != benchmark--long ]] || previous="" # has no argument there
        case $previous in
            --model | --source | --package | --cache | --compare | --parent) files=folders ;;
            --output)
                files=folders
                case $command in reference | validate | benchmark) files=yes ;; esac
                ;;
            --state-file | --state-json-file | --questions | --lang-temperatures | --tokenizer | --file | --fixture)
                files=yes
                ;;
            --reference | --html) files=yes ;;
            --precision)
                words="float double"
                [[ $command == predict ]] || words="fp16 fp32"
                ;;
            --backend) words="native interpreter coreml" ;;
            --compute-units) words="cpu cpu_gpu cpu_ne all" ;;
            --numerics) words="fp16 fp16-strict fp32" ;;
            --long) words="native" ;;
            --kind) words="body layer mlp" ;;
            --graph) words="per-head lean" ;;
            --bits) words="8 6 4 3 2 1" ;;
            --mode) words="kmeans uniform unique weighted" ;;
            --group-size) words="32 4 tensor" ;;
            --length | --markers | --layer | --weights-sha256) return ;;
            --repeats | --cycles | --warmups | --calls | --power | --power-interval | --block-seconds) return ;;
            --idle-seconds | --target-error | --workers) return ;;
            --state | --state-json | --text | --threads | --max-len | --head-max-len | --min-confidence | --lang) return ;;
            *)
                case $command in
                    predict) words="--model --state --state-file --state-json --state-json-file --questions --pretty
                        --table --raw --state-token-counts --threads --max-len --head-max-len --min-confidence --lang
                        --lang-temperatures --precision --package --backend --compute-units --numerics --cache
                        --long --help" ;;
                    info) words="--model --hashes --help" ;;
                    tokenize) words="--model --tokenizer --text --file --lines --tokens --help" ;;
                    export | probe) words="--model --source --output --kind --length --graph --precision --markers
                        --layer --standalone --weights-sha256 --threads --help" ;;
                    inspect)
                        words="--ops --tree --json --palettes --parent --verify --diff --plan --compute-units --model
                            --help"
                        [[ $word == -* ]] || files=folders
                        ;;
                    reference) words="--model --output --fixture --threads --help" ;;
                    validate) words="--package --output --reference --fixture --repeats --html --length --model --backend
                        --compute-units --numerics --cache --threads --help" ;;
                    benchmark) words="--package --output --long --compare --cycles --warmups --calls --power
                        --power-interval --block-seconds --idle-seconds --length --model --backend --compute-units
                        --numerics --cache --threads --help" ;;
                    palettize) words="--package --output --bits --mode --group-size --target-error --workers --model
                        --fixture --reference --screen --table --repeats --backend --compute-units --numerics --cache
                        --help" ;;
                    help) words="predict info tokenize export probe inspect reference validate benchmark palettize" ;;
                esac
                ;;
        esac
    fi

    local line
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(
        case $files in
            folders) compgen -d -- "$word" ;;
            yes) compgen -f -- "$word" ;;
            *) compgen -W "$words" -- "$word" ;;
        esac
    )
    if [[ $files != no ]]; then
        compopt -o filenames 2>/dev/null
    fi
}

complete -F _layac layac
