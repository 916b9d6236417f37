/**
 * npm run peer -- scheduler|workloads|e2e|golden [options]
 *
 * Compares Nodekeeper with upstream Kubernetes. Each command prints its options with --help. The programs of upstream
 * and the recorded stories are no part of this repository.
 */
import { type Command, UsageError } from './command.ts';
import { e2e } from './e2e.ts';
import { golden } from './golden.ts';
import { scheduler } from './scheduler.ts';
import { workloads } from './workloads.ts';

const COMMANDS: Readonly<Record<string, Command>> = { scheduler, workloads, e2e, golden };

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  const command = COMMANDS[name];
  if (command === undefined) {
    const isHelp = name === '--help';
    (isHelp ? console.log : console.error)(`Usage: npm run peer -- ${Object.keys(COMMANDS).join('|')} [options]`);
    return isHelp ? 0 : 2;
  }
  if (args.includes('--help')) {
    console.log(command.usage);
    return 0;
  }
  try {
    return await command.run(args);
  } catch (error) {
    const isUsage = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
    console.error(isUsage ? `${(error as Error).message}\n\n${command.usage}` : error);
    return 2;
  }
}

process.exitCode = await main(process.argv.slice(2));
