/** Commands to the fleet of a running local mode, over its control socket. */
import { type Control, type ControlOutcome, sendControl, serveControl } from '../control-socket.ts';
import type { Fleet } from './fleet.ts';
import type { MachineStatus } from './machine.ts';

/** File name of the socket inside the data directory. */
export const FLEET_SOCKET = 'fleet.sock';

export type FleetCommand =
  | { readonly verb: 'silence' | 'beat'; readonly names: readonly string[] }
  | { readonly verb: 'list'; readonly names: readonly string[] };

export type FleetReply =
  | { readonly kind: 'done'; readonly names: readonly string[] }
  | { readonly kind: 'unknown'; readonly names: readonly string[] }
  | { readonly kind: 'listed'; readonly machines: readonly MachineStatus[] }
  | { readonly kind: 'malformed'; readonly why: string };

/** Serves commands on the socket `path`. @throws ControlError when another fleet already serves it */
export const serveFleetControl = (path: string, fleet: Fleet): Promise<Control> =>
  serveControl(path, (command) => obey(command, fleet));

/** Sends one command to the fleet of a running local mode. @throws ControlError for a malformed answer */
export const sendFleetCommand = (path: string, command: FleetCommand): Promise<ControlOutcome<FleetReply>> =>
  sendControl<FleetReply>(path, command);

function obey(value: unknown, fleet: Fleet): FleetReply {
  const command = parseCommand(value);
  if (command === undefined)
    return { kind: 'malformed', why: 'a command is {"verb": "silence|beat|list", "names": […]}' };
  if (command.verb === 'list') return { kind: 'listed', machines: fleet.list() };
  return fleet[command.verb](command.names);
}

function parseCommand(value: unknown): FleetCommand | undefined {
  const { verb, names } = (value ?? {}) as { verb?: unknown; names?: unknown };
  if (verb !== 'silence' && verb !== 'beat' && verb !== 'list') return undefined;
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) return undefined;
  return { verb, names };
}
