/** The simulated fleet of local mode: start it, control it from another shell. */
export { durationSeconds } from '../../agent/rules/planned-silence.ts';
export {
  FLEET_SOCKET,
  type FleetCommand,
  type FleetReply,
  sendFleetCommand,
  serveFleetControl,
} from './control.ts';
export {
  DEFAULT_REGION,
  DEFAULT_ZONES,
  type Fleet,
  type FleetOptions,
  type FleetOutcome,
  type FleetStatus,
  type ListedMachine,
  type RelayAction,
  startFleet,
} from './fleet.ts';
export type { MachineStatus, Timers } from './machine.ts';
