/**
 * npm run fleet -- silence NAME…|beat NAME…|list [NAME…]
 *
 * Makes machines of the running local mode fall silent or beat again. Names may be globs, quoted from the shell.
 */
import { join } from 'node:path';
import { FLEET_SOCKET, type MachineStatus, sendFleetCommand } from '../fleet/index.ts';
import { selectNames } from '../fleet/names.ts';
import { complain, printTable, runControlCommand } from './control-command.ts';

const USAGE = 'usage: npm run fleet -- [--data DIR] silence NAME…|beat NAME…|list [NAME…]';

async function obey(words: readonly string[], dataDir: string): Promise<number | undefined> {
  const [verb, ...names] = words;
  if (verb !== 'silence' && verb !== 'beat' && verb !== 'list') return undefined;
  if (verb !== 'list' && names.length === 0) return undefined;

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
    `${machine.beatEverySeconds}s`,
    machine.failures > 0 ? `${machine.failures} failed: ${machine.lastFailure ?? ''}` : '',
  ]);
  printTable([['NAME', 'ZONE', 'STATE', 'LAST BEAT', 'EVERY', ''], ...rows]);
  return 0;
}

await runControlCommand(USAGE, obey);
