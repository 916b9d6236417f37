/**
 * What a machine reports about the others of its site, in an annotation of its own heartbeat: machines that do not
 * answer it on the site's network (docs/decisions/0063).
 *
 * The text is `<role of the reporter> <names>`: `hub node-a,node-b`, sorted, separated by commas. A text without names
 * withdraws all reports of its reporter. A heartbeat without the annotation changes nothing.
 */
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';

/** It is never stored with the Lease. */
export const SILENT_MACHINES_ANNOTATION = 'nodekeeper.dev/silent-machines';

/** Names in one report. */
export const SILENT_MACHINES_MAX = 32;
/** A heartbeat has a bounded body, and each tick reads what is stored of it. Characters. */
const TEXT_LENGTH_MAX = 1_000;

/** `hub`: the relay of a site. `machine`: a machine that the hub asked to probe another one. */
export type WitnessRole = 'hub' | 'machine';

export interface SilentMachines {
  readonly role: WitnessRole;
  /** Sorted, without repetitions. */
  readonly names: readonly string[];
}

/** The text of a report. Names that it cannot hold are left out. */
export function silentMachinesText(role: WitnessRole, names: Iterable<string>): string {
  let text = `${role} `;
  const sorted = [...new Set(names)].sort();
  for (const [index, name] of sorted.slice(0, SILENT_MACHINES_MAX).entries()) {
    const longer = index === 0 ? text + name : `${text},${name}`;
    if (longer.length > TEXT_LENGTH_MAX) break;
    text = longer;
  }
  return text;
}

const TEXT = /^(hub|machine) ([a-z0-9.,-]*)$/;
/** No empty name, and none with other characters at its ends than letters and digits. */
const NAME = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;

/** Undefined for a text that no machine of ours writes. A machine may write anything. */
export function parseSilentMachines(text: string): SilentMachines | undefined {
  const [, role, list = ''] = TEXT.exec(text) ?? [];
  if (role === undefined) return undefined;
  const names = list === '' ? [] : list.split(',');
  const areValid = names.every((name) => name.length <= NAME_LENGTH_MAX && NAME.test(name));
  if (!areValid || silentMachinesText(role as WitnessRole, names) !== text) return undefined;
  return { role: role as WitnessRole, names };
}

/** A report is valid for this time after it was last received; a withdrawn one is remembered for as long. */
export const REPORT_VALID_MS = 30_000;

/** A stored report. */
export interface SilenceReport {
  readonly reporter: string;
  readonly role: WitnessRole;
  /** When it was last received. Epoch milliseconds. */
  readonly receivedAtMs: number;
  /** Since when it has reported each silent machine. Epoch milliseconds. */
  readonly sinceMs: ReadonlyMap<string, number>;
  /** When it withdrew its reports of other machines. Epoch milliseconds. */
  readonly withdrawnAtMs: ReadonlyMap<string, number>;
}
