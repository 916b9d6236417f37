/**
 * npm run fleet -- silence NAME…|beat NAME…|list [NAME…]
 *
 * Makes machines of the running local mode fall silent or beat again. Names may be globs, quoted from the shell.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FLEET_SOCKET, FleetControlError, type MachineStatus, sendFleetCommand } from '../fleet/index.ts';
import { selectNames } from '../fleet/names.ts';

const USAGE = 'usage: npm run fleet -- [--data DIR] silence NAME…|beat NAME…|list [NAME…]';

async function run(args: readonly string[]): Promise<number> {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (cause) {
    return complain(`${(cause as Error).message}\n${USAGE}`, 2);
  }
  if (parsed.values.help) {
    console.log(USAGE);
    return 0;
  }
  const [verb, ...names] = parsed.positionals;
  if (verb !== 'silence' && verb !== 'beat' && verb !== 'list') return complain(USAGE, 2);
  if (verb !== 'list' && names.length === 0) return complain(USAGE, 2);

  const dataDir = parsed.values.data ?? '.nodekeeper';
  const outcome = await sendFleetCommand(join(dataDir, FLEET_SOCKET), { verb, names });
  if (outcome.kind === 'notRunning') return complain(`no fleet is running in ${dataDir}; start it with: npm start`);
  const { reply } = outcome;
  switch (reply.kind) {
    case 'done':
      for (const name of reply.names) console.log(`${name} ${verb === 'silence' ? 'silent' : 'beating'}`);
      return 0;
    case 'unknown':
      return complain(`no such machine: ${reply.names.join(', ')}`);
    case 'listed':
      return list(reply.machines, names);
    case 'malformed':
      return complain(`the running fleet did not understand: ${reply.why}`);
  }
}

const parse = (args: readonly string[]) =>
  parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      data: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });

function list(machines: readonly MachineStatus[], globs: readonly string[]): number {
  let wanted = machines;
  if (globs.length > 0) {
    const names = machines.map((machine) => machine.name);
    const { selected, unmatched } = selectNames(globs, names);
    if (unmatched.length > 0) return complain(`no such machine: ${unmatched.join(', ')}`);
    wanted = machines.filter((machine) => selected.includes(machine.name));
  }
  const nowMs = Date.now();
  const rows = wanted.map((machine) => [
    machine.name,
    machine.zone,
    machine.beating ? 'beating' : 'silent',
    machine.lastBeatAtMs === undefined ? 'never' : `${Math.round((nowMs - machine.lastBeatAtMs) / 1_000)}s ago`,
    machine.failures > 0 ? `${machine.failures} failed: ${machine.lastFailure ?? ''}` : '',
  ]);
  const all = [['NAME', 'ZONE', 'STATE', 'LAST BEAT', ''], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  for (const row of all)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    );
  return 0;
}

function complain(line: string, code = 1): number {
  console.error(line);
  return code;
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (cause) {
  if (!(cause instanceof FleetControlError)) throw cause;
  process.exitCode = complain(cause.message);
}
