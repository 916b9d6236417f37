/** npx nodekeeper <command>: for users of a cluster, on their own machines. */
import { CommandError, type CommandIo } from '../command.ts';

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

const io = {
  print: (line: string) => console.log(line),
  printError: (line: string) => console.error(line),
};

if (OPERATIONS.includes(process.argv[2] ?? '') && !process.argv.includes('--help')) {
  const { operationCommand } = await import('../../server/operations/commands.ts');
  process.exit(await operationCommand(process.argv[2]!, process.argv.slice(3), { ...io, nowMs: Date.now() }));
}

if (process.argv[2] === 'move') {
  const { moveCommand } = await import('../../server/move/move-command.ts');
  process.exit(await moveCommand(process.argv.slice(3), io));
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

interface Command {
  readonly usage: string;
  run(args: readonly string[], io: CommandIo): Promise<void>;
}

/** In the order of the usage text. Each is loaded when asked for: a start then reads a third of the modules. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  version: () => import('../version.ts').then((own) => ({ usage: own.VERSION_USAGE, run: own.versionCommand })),
  kubeconfig: () =>
    import('../kubeconfig-command.ts').then((own) => ({ usage: own.KUBECONFIG_USAGE, run: own.kubeconfigCommand })),
  token: () => import('../token.ts').then((own) => ({ usage: own.TOKEN_USAGE, run: own.tokenCommand })),
  'bootstrap-token': () =>
    import('../bootstrap-token.ts').then((own) => ({
      usage: own.BOOTSTRAP_TOKEN_USAGE,
      run: own.bootstrapTokenCommand,
    })),
  'join-command': () => import('../join-command.ts').then((own) => ({ usage: own.JOIN_USAGE, run: own.joinCommand })),
  decisions: () => import('../decisions.ts').then((own) => ({ usage: own.DECISIONS_USAGE, run: own.decisionsCommand })),
  explain: () => import('../explain.ts').then((own) => ({ usage: own.EXPLAIN_USAGE, run: own.explainCommand })),
  advise: () => import('../advise.ts').then((own) => ({ usage: own.ADVISE_USAGE, run: own.adviseCommand })),
  doctor: () => import('../doctor.ts').then((own) => ({ usage: own.DOCTOR_USAGE, run: own.doctorCommand })),
  prove: async () => ({
    usage: (await import('../prove/usage.ts')).PROVE_USAGE,
    run: async (args, io) => (await import('../prove/prove.ts')).proveCommand(args, io),
  }),
  console: () => import('../console.ts').then((own) => ({ usage: own.CONSOLE_USAGE, run: own.consoleCommand })),
};

async function usageText(): Promise<string> {
  const commands = await Promise.all(Object.values(COMMANDS).map((load) => load()));
  const usages = [...SERVER_USAGE, DEMO_USAGE, ...commands.map(({ usage }) => usage)];
  return ['usage:', ...usages.flatMap((usage) => usage.split('\n')).map((line) => `  ${line}`)].join('\n');
}

const [name = '', ...args] = process.argv.slice(2);
const isDemonstration = await ranDemonstration();
const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
const isHelp = name === '-h' || name === 'help' || process.argv.includes('--help');
if (isDemonstration) {
  // Its command sets the exit code.
} else if (load === undefined || isHelp) {
  const usage = await usageText();
  (isHelp ? console.log : console.error)(name === '' || isHelp ? usage : `unknown command: ${name}\n${usage}`);
  process.exitCode = isHelp ? 0 : 2;
} else {
  try {
    const command = await load();
    await command.run(args, {
      environment: process.env,
      nowMs: Date.now(),
      print: (line) => console.log(line),
      note: (line) => console.error(line),
    });
  } catch (error) {
    const isUsage = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
    if (!(error instanceof CommandError) && !isUsage) throw error;
    console.error(`nodekeeper ${name}: ${error.message}`);
    console.error(error instanceof CommandError ? error.next : await usageText());
    process.exitCode = isUsage ? 2 : 1;
  }
}
