/** Commands to the fleet of a running cluster, over its control socket. */
import { type Control, type ControlOutcome, sendControl, serveControl } from '../../shared/host/control-socket.ts';
import type { Fleet, ListedMachine, Nap, RelayAction, RequestOutcome, Swing } from './fleet.ts';

/** File name of the socket inside the data directory. */
export const FLEET_SOCKET = 'fleet.sock';

export type FleetCommand =
  | { readonly verb: 'silence' | 'beat'; readonly names: readonly string[] }
  | ({ readonly verb: 'sleep'; readonly names: readonly string[] } & Nap)
  | ({ readonly verb: 'flap'; readonly names: readonly string[] } & Swing)
  | { readonly verb: 'label'; readonly names: readonly string[]; readonly key: string; readonly value: string }
  /** `names`: zones. */
  | { readonly verb: 'relay'; readonly names: readonly string[]; readonly action: RelayAction }
  | { readonly verb: 'list'; readonly names: readonly string[] };

export type FleetReply =
  | { readonly kind: 'done'; readonly names: readonly string[] }
  | { readonly kind: 'unknown'; readonly names: readonly string[] }
  | Extract<RequestOutcome, { kind: 'refused' }>
  | { readonly kind: 'listed'; readonly machines: readonly ListedMachine[] }
  | { readonly kind: 'malformed'; readonly why: string };

/** Serves commands on the socket `path`. @throws ControlError when another fleet already serves it */
export const serveFleetControl = (path: string, fleet: Fleet): Promise<Control> =>
  serveControl(path, (command) => obey(command, fleet));

/** Sends one command to a running fleet. @throws ControlError for a malformed answer */
export const sendFleetCommand = (path: string, command: FleetCommand): Promise<ControlOutcome<FleetReply>> =>
  sendControl<FleetReply>(path, command);

function obey(value: unknown, fleet: Fleet): FleetReply | Promise<FleetReply> {
  const command = parseCommand(value);
  if (command === undefined)
    return {
      kind: 'malformed',
      why: 'a command is {"verb": "silence|beat|sleep|flap|label|relay|list", "names": […]}',
    };
  if (command.verb === 'list') return { kind: 'listed', machines: fleet.list() };
  if (command.verb === 'relay') return fleet.relay(command.names, command.action);
  if (command.verb === 'sleep') return fleet.sleep(command.names, command);
  if (command.verb === 'flap') return fleet.flap(command.names, command);
  if (command.verb === 'label') return fleet.label(command.names, command);
  return fleet[command.verb](command.names);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;

function parseCommand(value: unknown): FleetCommand | undefined {
  const body = (value ?? {}) as Readonly<Record<string, unknown>>;
  const { verb, names, seconds, reason, times, key, value: text, action } = body;
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) return undefined;
  if (verb === 'sleep') {
    return isCount(seconds) && typeof reason === 'string' ? { verb, names, seconds, reason } : undefined;
  }
  if (verb === 'flap') return isCount(times) && isCount(seconds) ? { verb, names, times, seconds } : undefined;
  if (verb === 'label') {
    return typeof key === 'string' && typeof text === 'string' ? { verb, names, key, value: text } : undefined;
  }
  if (verb === 'relay') {
    const isAction = action === 'start' || action === 'kill' || action === 'remove';
    return isAction ? { verb, names, action } : undefined;
  }
  if (verb !== 'silence' && verb !== 'beat' && verb !== 'list') return undefined;
  return { verb, names };
}
