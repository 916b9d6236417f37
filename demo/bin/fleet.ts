/**
 * nodekeeper demo fleet silence NAME…|beat NAME…|sleep --for TIME [--reason TEXT] NAME…|list [NAME…]|
 *                       flap [--times N] [--for TIME] NAME…|label KEY=VALUE NAME…|relay start|kill|remove ZONE…
 *
 * Makes machines of the running cluster silent, announced or not, once or repeatedly, or lets them beat again. `label`
 * sets a label of their Nodes, such as one that selects a profile. `relay` lets the heartbeats of a zone pass through a
 * relay, and kills the relay. Names may be globs, quoted from the shell.
 */
import { join } from 'node:path';
import {
  durationSeconds,
  FLEET_SOCKET,
  type FleetCommand,
  type ListedMachine,
  sendFleetCommand,
} from '../fleet/index.ts';
import { selectNames } from '../fleet/names.ts';
import { type ControlOptions, complain, printTable, runControlCommand } from './control-command.ts';

const USAGE = `usage: nodekeeper demo fleet [--data DIR] COMMAND

  silence NAME…                               stop these machines, as a power cut does
  beat NAME…                                  start them again
  sleep --for TIME [--reason TEXT] NAME…      announce a silence, keep it, and beat again
  flap [--times N] [--for TIME] NAME…         N silences (3) of TIME (60s), each followed by 20 s of heartbeats
  label KEY=VALUE NAME…                       set a label of their Nodes, such as one that selects a profile
  relay start|kill|remove ZONE…               pass the heartbeats of these zones through a relay, or kill it
  list [NAME…]                                state, heartbeat interval and way of heartbeats
`;

const FLAP_TIMES = 3;
/** Longer than the default grace period, one heartbeat interval and one tick. Seconds. */
const FLAP_SECONDS = 60;

function commandOf([verb, ...names]: readonly string[], options: ControlOptions): FleetCommand | undefined {
  if (verb === 'list') return { verb, names };
  if (names.length === 0) return undefined;
  if (verb === 'silence' || verb === 'beat') return { verb, names };
  if (verb === 'label') return labelCommand(names);
  if (verb === 'relay') return relayCommand(names);
  const seconds = durationSeconds(options.for ?? '');
  if (verb === 'flap') {
    const times = Number(options.times ?? FLAP_TIMES);
    const isValid = Number.isSafeInteger(times) && times > 0 && (options.for === undefined || seconds !== undefined);
    return isValid ? { verb, names, times, seconds: seconds ?? FLAP_SECONDS } : undefined;
  }
  if (verb !== 'sleep' || seconds === undefined) return undefined;
  return { verb, names, seconds, reason: options.reason ?? '' };
}

function labelCommand([label = '', ...names]: readonly string[]): FleetCommand | undefined {
  const at = label.indexOf('=');
  if (at < 1 || names.length === 0) return undefined;
  return { verb: 'label', names, key: label.slice(0, at), value: label.slice(at + 1) };
}

function relayCommand([action, ...zones]: readonly string[]): FleetCommand | undefined {
  const isAction = action === 'start' || action === 'kill' || action === 'remove';
  return isAction && zones.length > 0 ? { verb: 'relay', names: zones, action } : undefined;
}

const STATES = {
  silence: 'silent',
  beat: 'beating',
  sleep: 'asleep',
  flap: 'flapping',
  label: 'labelled',
  list: '',
} as const;
const RELAY_STATES = { start: 'relay started', kill: 'relay killed', remove: 'relay removed' } as const;

async function obey(words: readonly string[], dataDir: string, options: ControlOptions): Promise<number | undefined> {
  const command = commandOf(words, options);
  if (command === undefined) return undefined;
  const { names } = command;

  const outcome = await sendFleetCommand(join(dataDir, FLEET_SOCKET), command);
  if (outcome.kind === 'notRunning')
    return complain(`no fleet is running in ${dataDir}; start it with: npx nodekeeper serve --demo`);
  const { reply } = outcome;
  switch (reply.kind) {
    case 'done':
      for (const name of reply.names) {
        console.log(`${name} ${command.verb === 'relay' ? RELAY_STATES[command.action] : STATES[command.verb]}`);
      }
      return 0;
    case 'refused':
      return complain(`${reply.name}: ${reply.why}`);
    case 'unknown':
      return complain(`no such ${command.verb === 'relay' ? 'zone' : 'machine'}: ${reply.names.join(', ')}`);
    case 'listed':
      return list(reply.machines, names);
    case 'malformed':
      return complain(`the running fleet did not understand: ${reply.why}`);
  }
}

function list(machines: readonly ListedMachine[], globs: readonly string[]): number {
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
    machine.way,
    machine.failures > 0 ? `${machine.failures} failed: ${machine.lastFailure ?? ''}` : '',
  ]);
  printTable([['NAME', 'ZONE', 'STATE', 'LAST BEAT', 'EVERY', 'WAY', ''], ...rows]);
  return 0;
}

await runControlCommand(USAGE, obey);
