# Completion of FairGV's programs for bash, which bash-completion loads by the name of the program.

# The options of program $1; '=' marks one that wants an argument.
_fairgv_options() {
	local common="--version --help"

	case $1 in
	fairgv-run) echo "--vm= --config= --socket= --private --strict --quiet --stats $common" ;;
	fairgv-vm) echo "--config= --print --libvirt $common" ;;
	fairgv-region) echo "--json --calls= $common" ;;
	fairgv-sim) echo "--json --csv --svg= --seed= --seconds= $common" ;;
	fairgvctl) echo "--socket= --config= --json --interval= --count= --root= --save --end --to= --from= --key-file= $common" ;;
	fairgv-metrics) echo "--config= $common" ;;
	fairgv-backend) echo "--config= --socket= --check --ready-fd= --private= $common" ;;
	esac
}

# Column $2 of the daemon's table $1: 1 are the GPUs, 2 the VMs, 3 the sessions. Nothing for users
# who may not ask.
_fairgv_column() {
	fairgvctl list 2>/dev/null | awk -v table="$1" -v column="$2" '
		BEGIN { number = 1; head = 1 }
		!NF { number++; head = 1; next }
		head { head = 0; next }
		number == table { print $column }'
}

# What may follow on fairgvctl's command $1.
_fairgv_ctl_words() {
	case $1 in
	"") echo "list stat set end freeze thaw reload top metrics doctor cdi" ;;
	stat) _fairgv_column 2 1 ;;
	set) _fairgv_column 2 1 | sed 's/$/ weight= priority= memory= users= sessions= request= limit= slo=/' ;;
	freeze | thaw) _fairgv_column 2 1; _fairgv_column 3 2 ;;
	end) _fairgv_column 3 2 ;;
	esac
}

# The argument of option $1 that is half typed as $2.
_fairgv_argument() {
	case $1 in
	--config | --socket | --svg | --root | --to | --from | --key-file) compgen -f -- "$2" ;;
	--vm) compgen -W "$(_fairgv_column 2 1)" -- "$2" ;;
	esac
}

# The first word behind the program that is neither an option nor an option's argument: its number
# in COMP_WORDS, or nothing where there is none before the word that is typed.
_fairgv_first_word() {
	local options=$1 i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) [ $((i + 1)) -ge "$COMP_CWORD" ] || echo $((i + 1)); return ;;
		--*) [[ " $options " != *" ${COMP_WORDS[i]}= "* ]] || i=$((i + 1)) ;;
		*) echo "$i"; return ;;
		esac
	done
}

_fairgv() {
	local program=${1##*/} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local options first words

	options=$(_fairgv_options "$program")
	first=$(_fairgv_first_word "$options")
	COMPREPLY=()
	if [[ " $options " == *" $before= "* ]]; then
		mapfile -t COMPREPLY < <(_fairgv_argument "$before" "$word")
	elif [ -n "$first" ] && [ "$program" = fairgv-run ]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${options//=/}" -- "$word")
	elif [ "$program" = fairgv-run ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
	elif [ "$program" = fairgvctl ]; then
		words=$(_fairgv_ctl_words "${first:+${COMP_WORDS[first]}}")
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

complete -F _fairgv fairgv-run fairgv-vm fairgv-region fairgv-sim fairgvctl fairgv-backend \
	fairgv-metrics
