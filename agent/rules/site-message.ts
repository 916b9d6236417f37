/**
 * What machines and the relay of their site send to each other, one JSON object per line (docs/witnesses.md). Neither
 * end trusts the other: a line that cannot be read closes the connection.
 */
import { PLANNED_SILENCE_SECONDS_MAX } from '../../shared/fleet/nodes/planned-silence.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import { subdomainErrors } from '../../shared/kubernetes/validate-metadata.ts';
import type { WitnessAddress } from '../ports/site.ts';
import { parseIp } from './ip-address.ts';

/** The request that opens the connection. */
export const SITE_PATH = '/site';
export const SITE_PROTOCOL = 'nodekeeper-site';
/** Longest line, without its end. Bytes. */
export const SITE_LINE_BYTES_MAX = 1_024;

/** What a machine answers to a probe: one line, then it closes the connection. */
export const witnessLine = (nodeName: string): string => `nodekeeper-agent ${nodeName}`;

export type MachineMessage =
  /** `port`: where the machine answers probes; 0: it does not. */
  | { readonly kind: 'beat'; readonly node: string; readonly port: number }
  /** The machine will be silent, and closes the connection. */
  | { readonly kind: 'goodbye'; readonly forSeconds: number };

export type HubMessage =
  /** The answer to a beat. */
  | { readonly kind: 'seen' }
  | ({ readonly kind: 'probe' } & WitnessAddress)
  /** The relay has no answer of this machine either: its silence is to be reported. */
  | { readonly kind: 'confirm'; readonly node: string }
  /** The probes of this machine can end. */
  | { readonly kind: 'release'; readonly node: string };

export const messageText = (message: MachineMessage | HubMessage): string => JSON.stringify(message);

const isName = (value: unknown): value is string => typeof value === 'string' && subdomainErrors(value).length === 0;

const isWhole = (value: unknown, least: number, most: number): value is number =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= most;

const PORT_MAX = 65_535;

export function machineMessageOf(line: string): MachineMessage | undefined {
  const { kind, node, port, forSeconds } = objectIn(line);
  if (kind === 'beat' && isName(node) && isWhole(port, 0, PORT_MAX)) return { kind, node, port };
  if (kind === 'goodbye' && isWhole(forSeconds, 1, PLANNED_SILENCE_SECONDS_MAX)) return { kind, forSeconds };
  return undefined;
}

export function hubMessageOf(line: string): HubMessage | undefined {
  const { kind, node, address, port } = objectIn(line);
  if (kind === 'seen') return { kind };
  if (!isName(node)) return undefined;
  if (kind === 'confirm' || kind === 'release') return { kind, node };
  const isAddress = typeof address === 'string' && parseIp(address) !== undefined;
  return kind === 'probe' && isAddress && isWhole(port, 1, PORT_MAX) ? { kind, node, address, port } : undefined;
}

function objectIn(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
