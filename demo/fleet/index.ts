/** The simulated fleet: start it, control it from another shell. */
export { durationSeconds } from '../../agent/rules/planned-silence.ts';
export {
  FLEET_SOCKET,
  type FleetCommand,
  sendFleetCommand,
  serveFleetControl,
} from './control.ts';
export {
  type ListedMachine,
  startFleet,
} from './fleet.ts';
