/** npx nodekeeper <command>: for users of a cluster, on their own machines. */
import { ADVISE_USAGE, adviseCommand } from '../advise.ts';
import { BOOTSTRAP_TOKEN_USAGE, bootstrapTokenCommand } from '../bootstrap-token.ts';
import { CommandError, type CommandIo } from '../command.ts';
import { CONSOLE_USAGE, consoleCommand } from '../console.ts';
import { DECISIONS_USAGE, decisionsCommand } from '../decisions.ts';
import { DOCTOR_USAGE, doctorCommand } from '../doctor.ts';
import { EXPLAIN_USAGE, explainCommand } from '../explain.ts';
import { JOIN_USAGE, joinCommand } from '../join-command.ts';
import { KUBECONFIG_USAGE, kubeconfigCommand } from '../kubeconfig-command.ts';
import { PROVE_USAGE } from '../prove/usage.ts';
import { TOKEN_USAGE, tokenCommand } from '../token.ts';
import { VERSION_USAGE, versionCommand } from '../version.ts';

/** Commands to the file of a cluster on this machine. */
const OPERATIONS = ['backup', 'check', 'restore'];
const SERVER_USAGE = [
  'nodekeeper serve [options]    the cluster on this machine; --help lists them',
  'nodekeeper backup FILE | check | restore FILE  [--data DIR]    its database',
  'nodekeeper move --from DIR --to DIR [options]    to another directory or machine; --help lists them',
];

/** `serve` has options and a life of its own, and is loaded when it is asked for: it is the whole system. */
if (process.argv[2] === 'serve') {
  const loading = setInterval(() => console.error('nodekeeper: loading its program'), 2_000);
  const { serveCommand } = await import('../../server/bin/serve.ts');
  clearInterval(loading);
  process.exit(await serveCommand(process.argv.slice(3)));
}

if (OPERATIONS.includes(process.argv[2] ?? '') && !process.argv.includes('--help')) {
  const { operationCommand } = await import('../../server/operations/commands.ts');
  const io = { print: (line: string) => console.log(line), nowMs: Date.now() };
  process.exit(await operationCommand(process.argv[2]!, process.argv.slice(3), io));
}

if (process.argv[2] === 'move') {
  const { moveCommand } = await import('../../server/move/move-command.ts');
  process.exit(await moveCommand(process.argv.slice(3), { print: (line) => console.log(line) }));
}

/** Commands to a running `serve --demo`, loaded when asked for. Each reads the words of the process. */
const DEMONSTRATION: Readonly<Record<string, () => Promise<unknown>>> = {
  fleet: () => import('../../demo/bin/fleet.ts'),
  cloud: () => import('../../demo/bin/cloud.ts'),
  machine: () => import('../../demo/bin/machine.ts'),
};
const DEMO_USAGE =
  'nodekeeper demo fleet|cloud|machine ...    the machines of `serve --demo`; --help lists the commands';

/** The command line is one of these. @returns whether it was */
async function ranDemonstration(): Promise<boolean> {
  const [noun = ''] = process.argv.slice(3);
  const command = Object.hasOwn(DEMONSTRATION, noun) ? DEMONSTRATION[noun] : undefined;
  if (process.argv[2] !== 'demo' || command === undefined) return false;
  process.argv.splice(2, 2);
  await command();
  return true;
}

const COMMANDS: Readonly<Record<string, (args: readonly string[], io: CommandIo) => Promise<void>>> = {
  kubeconfig: kubeconfigCommand,
  token: tokenCommand,
  'bootstrap-token': bootstrapTokenCommand,
  'join-command': joinCommand,
  decisions: decisionsCommand,
  explain: explainCommand,
  advise: adviseCommand,
  doctor: doctorCommand,
  prove: async (args, io) => (await import('../prove/prove.ts')).proveCommand(args, io),
  console: consoleCommand,
  version: versionCommand,
};
const usages = [
  ...SERVER_USAGE,
  DEMO_USAGE,
  VERSION_USAGE,
  KUBECONFIG_USAGE,
  TOKEN_USAGE,
  BOOTSTRAP_TOKEN_USAGE,
  JOIN_USAGE,
  DECISIONS_USAGE,
  EXPLAIN_USAGE,
  ADVISE_USAGE,
  DOCTOR_USAGE,
  PROVE_USAGE,
  CONSOLE_USAGE,
].flatMap((usage) => usage.split('\n'));
const USAGE = ['usage:', ...usages.map((line) => `  ${line}`)].join('\n');

const [name = '', ...args] = process.argv.slice(2);
const isDemonstration = await ranDemonstration();
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
const isHelp = name === '-h' || name === 'help' || process.argv.includes('--help');
if (isDemonstration) {
  // Its command sets the exit code.
} else if (command === undefined || isHelp) {
  (isHelp ? console.log : console.error)(name === '' || isHelp ? USAGE : `unknown command: ${name}\n${USAGE}`);
  process.exitCode = isHelp ? 0 : 2;
} else {
  try {
    await command(args, {
      environment: process.env,
      nowMs: Date.now(),
      print: (line) => console.log(line),
      note: (line) => console.error(line),
    });
  } catch (error) {
    const isUsage = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
    if (!(error instanceof CommandError) && !isUsage) throw error;
    console.error(`nodekeeper ${name}: ${error.message}`);
    console.error(error instanceof CommandError ? error.next : USAGE);
    process.exitCode = isUsage ? 2 : 1;
  }
}
