/** What the commands to a running cluster share: `--data` and `--help`, how they fail, and their tables. */
import { parseArgs } from 'node:util';
import { ControlError } from '../../shared/host/control-socket.ts';
import { columns } from '../../shared/text-columns.ts';

/** Options of single commands. */
export interface ControlOptions {
  readonly for?: string | undefined;
  readonly reason?: string | undefined;
  readonly times?: string | undefined;
}

/** Runs the command line of this process. @param obey its exit code; undefined for words it does not know */
export async function runControlCommand(
  usage: string,
  obey: (words: readonly string[], dataDir: string, options: ControlOptions) => Promise<number | undefined>,
): Promise<void> {
  try {
    process.exitCode = await run(usage, obey);
  } catch (cause) {
    if (!(cause instanceof ControlError)) throw cause;
    process.exitCode = complain(cause.message);
  }
}

async function run(usage: string, obey: Parameters<typeof runControlCommand>[1]): Promise<number> {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse();
  } catch (cause) {
    return complain(`${(cause as Error).message}\n${usage}`, 2);
  }
  const { values, positionals } = parsed;
  if (values.help) {
    console.log(usage);
    return 0;
  }
  return (await obey(positionals, values.data ?? '.nodekeeper', values)) ?? complain(usage, 2);
}

const parse = () =>
  parseArgs({
    allowPositionals: true,
    options: {
      data: { type: 'string' },
      for: { type: 'string' },
      reason: { type: 'string' },
      times: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });

/** To standard error. @returns the exit code */
export function complain(line: string, code = 1): number {
  console.error(line);
  return code;
}

/** @param rows the headings, then a row each */
export function printTable(rows: readonly (readonly string[])[]): void {
  for (const line of columns(rows, '   ')) console.log(line);
}
