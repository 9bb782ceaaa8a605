import type { Command, Option } from "./common/commander.js";
import { exitCode } from "./common/exit-codes.js";
import { usageError } from "./common/failure.js";
import { usefulOptions } from "./common/shared-options.js";
import { printLines } from "./output/print.js";

/** Timeout of the query for names, short because the user waits at a prompt. */
const NAMES_TIMEOUT = "500ms";

/** Commands whose first word is a resource, or a prefix of one. */
const RESOURCE_COMMANDS = ["run", "hold", "elect", "ls", "get", "watch", "release", "handover", "break"];

const scripts: Readonly<Record<string, (program: Command) => string[]>> = { bash, zsh, fish };

/** `leasehold completion SHELL`. */
export function completion(program: Command, shell: string): number {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined)
    throw usageError(`no completion for ${JSON.stringify(shell)}: it is bash, zsh or fish`);
  printLines(script(program));
  return exitCode("ok");
}

interface Completed {
  readonly name: string;
  readonly description: string;
  readonly options: readonly { flag: string; description: string }[];
}

function commandsOf(program: Command): Completed[] {
  const optionsOf = (options: readonly Option[]) =>
    options.map((option) => ({
      flag: option.long ?? option.short ?? "",
      description: option.description,
    }));
  return program
    .createHelp()
    .visibleCommands(program)
    .map((command) => ({
      name: command.name(),
      description: command.description(),
      options: [
        ...optionsOf(command.options.filter((option) => !option.hidden)),
        ...optionsOf(usefulOptions(command)),
        { flag: "--help", description: "print help" },
      ],
    }));
}

/** Bash and zsh share the script, which zsh reads through its own adapter. */
function bash(program: Command): string[] {
  const commands = commandsOf(program);
  return [
    "# bash completion for leasehold",
    "_leasehold() {",
    '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" index',
    "  COMPREPLY=()",
    "  for ((index = 1; index < COMP_CWORD; index += 1)); do",
    '    case "${COMP_WORDS[index]}" in',
    "      --) return ;;",
    `      ${commands.map(({ name }) => name).join("|")}) command="\${command:-\${COMP_WORDS[index]}}" ;;`,
    "    esac",
    "  done",
    '  case "$prev" in',
    '    -o|--output) COMPREPLY=($(compgen -W "table json ndjson" -- "$cur")); return ;;',
    '    --config|--key-file|--tls-*) COMPREPLY=($(compgen -f -- "$cur")); return ;;',
    "  esac",
    '  local words=""',
    '  case "$command" in',
    `    "") words="${commands.map(({ name }) => name).join(" ")}" ;;`,
    ...commands.map(
      ({ name, options }) =>
        `    ${name}) [[ "$cur" == -* ]] && words="${options.map(({ flag }) => flag).join(" ")}" ;;`,
    ),
    "  esac",
    `  [[ "$command" == check && "$cur" != -* ]] && COMPREPLY=($(compgen -f -- "$cur")) && return`,
    '  [[ "$command" == completion && "$cur" != -* ]] && words="bash zsh fish"',
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    '  case "$command" in',
    `    ${RESOURCE_COMMANDS.join("|")})`,
    '      if [[ "$cur" != -* ]]; then',
    "        local name",
    '        while IFS= read -r name; do COMPREPLY+=("$(printf \'%q\' "$name")"); done < <(',
    `          leasehold ls --names --timeout ${NAMES_TIMEOUT} -- "$cur" 2>/dev/null)`,
    "      fi ;;",
    "  esac",
    "}",
    "complete -F _leasehold leasehold",
  ];
}

function zsh(program: Command): string[] {
  return ["#compdef leasehold", "autoload -U +X bashcompinit && bashcompinit", ...bash(program)];
}

function fish(program: Command): string[] {
  const quoted = (text: string) => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
  const commands = commandsOf(program);
  const names = `(leasehold ls --names --timeout ${NAMES_TIMEOUT} -- (commandline -ct) 2>/dev/null)`;
  return [
    "# fish completion for leasehold",
    "complete -c leasehold -f",
    ...commands.flatMap(({ name, description, options }) => [
      `complete -c leasehold -n __fish_use_subcommand -a ${name} -d ${quoted(description)}`,
      ...options
        .filter(({ flag }) => flag.startsWith("--"))
        .map(
          ({ flag, description: meaning }) =>
            `complete -c leasehold -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)} -d ${quoted(meaning)}`,
        ),
    ]),
    "complete -c leasehold -n '__fish_seen_subcommand_from check' -F",
    "complete -c leasehold -s o -l output -x -a 'table json ndjson'",
    "complete -c leasehold -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'",
    `complete -c leasehold -n '__fish_seen_subcommand_from ${RESOURCE_COMMANDS.join(" ")}' -a ${quoted(names)}`,
  ];
}
