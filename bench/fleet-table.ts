/** The table "Requests, one kind at a time" of docs/quality.md, one column per measured server. */
import type { PhaseFigures } from './fleet-requests.ts';

/** Phases by label of the server, as `--figures` keeps them. */
export type FleetFigures = Readonly<Record<string, readonly PhaseFigures[]>>;

const REGISTRATION = ['POST nodes', 'PATCH nodes/status, first', 'POST leases'];

export function fleetTable(figures: FleetFigures): string {
  const labels = Object.keys(figures);
  const phases = [...new Set(labels.flatMap((label) => figures[label]!.map(({ phase }) => phase)))];
  const rows = phases.map((phase) => [
    phase,
    ...labels.map((label) => cell(figures[label]!.find((each) => each.phase === phase))),
  ]);
  rows.push(['a registration: the three requests', ...labels.map((label) => registration(figures[label]!))]);
  rows.push(['most memory of all processes', ...labels.map((label) => memory(figures[label]!))]);
  const lines = [['request', ...labels], ['---', ...labels.map(() => '---')], ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function cell(figures: PhaseFigures | undefined): string {
  if (figures === undefined) return '';
  const { requests, failed, perSecond, p50Ms, p99Ms, cpuMsPerRequest, cpuMsPerRequestNet } = figures;
  if (requests === 0) return Number.isFinite(cpuMsPerRequest) ? `${short(cpuMsPerRequest)} ms of CPU per second` : '';
  const cpu = cpuText(cpuMsPerRequest, cpuMsPerRequestNet);
  return [
    ...(cpu === '' ? [] : [cpu]),
    `${short(perSecond)} per second`,
    `p50 ${short(p50Ms)}, p99 ${short(p99Ms)} ms`,
    ...(failed === 0 ? [] : [`${failed} failed`]),
  ].join('; ');
}

/** All CPU, and in brackets that without the part at rest. */
const cpuText = (allMs: number, netMs: number): string =>
  Number.isFinite(allMs) ? `${short(allMs)} ms of CPU (${short(netMs)})` : '';

function registration(phases: readonly PhaseFigures[]): string {
  const parts = phases.filter(({ phase }) => REGISTRATION.includes(phase));
  if (parts.length < REGISTRATION.length) return '';
  const cpu = cpuText(
    parts.reduce((sum, { cpuMsPerRequest }) => sum + cpuMsPerRequest, 0),
    parts.reduce((sum, { cpuMsPerRequestNet }) => sum + cpuMsPerRequestNet, 0),
  );
  const perSecond = parts[0]!.requests / parts.reduce((sum, { seconds }) => sum + seconds, 0);
  return `${cpu === '' ? '' : `${cpu}; `}${short(perSecond)} per second`;
}

function memory(phases: readonly PhaseFigures[]): string {
  const most = Math.max(...phases.map(({ residentMegabytes }) => residentMegabytes));
  return most > 0 ? `${short(most)} MB` : '';
}

const short = (value: number): string => String(Number(value.toPrecision(3)));
