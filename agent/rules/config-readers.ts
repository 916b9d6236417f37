/**
 * Readers of configuration values: from a YAML or JSON document, and from the text of a flag. A reader that does not
 * accept a value returns what it expected.
 */

import type { Taint, TaintEffect } from '../../shared/kinds/types.ts';
import { parseGoDuration } from '../../shared/kubernetes/go-duration.ts';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import type { PriorityGrace, RelayConfig, ServicesConfig, ThresholdValue, WitnessConfig } from '../config.ts';
import { parseGoBoolean } from './go-boolean.ts';
import { isLoopback, isMulticast, isUnspecified, parseIp } from './ip-address.ts';

/** `path` leads from the field to the wrong value inside it. */
export interface ReadFault {
  readonly path: readonly (string | number)[];
  readonly expected: string;
}

/** In place of an expectation: the field does not exist. */
export const NO_SUCH_FIELD = 'no such field';

export type Read<Value> =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'unfit'; readonly faults: readonly ReadFault[] };

export type Reader<Value> = (value: unknown) => Read<Value>;

const read = <Value>(value: Value): Read<Value> => ({ kind: 'read', value });
const unfit = (expected: string, path: readonly (string | number)[] = []): Read<never> => ({
  kind: 'unfit',
  faults: [{ path, expected }],
});

export const text: Reader<string> = (value) => (typeof value === 'string' ? read(value) : unfit('text'));

export const flag: Reader<boolean> = (value) => (typeof value === 'boolean' ? read(value) : unfit('true or false'));

const INT32_MAX = 2_147_483_647;

export const wholeNumber =
  (minimum = -INT32_MAX - 1, maximum = INT32_MAX): Reader<number> =>
  (value) =>
    Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum
      ? read(value as number)
      : unfit(`a whole number from ${minimum} to ${maximum}`);

const DURATION = 'a duration such as 10s, 1m30s or 500ms, not negative';

/** Milliseconds. */
export const duration: Reader<number> = (value) => {
  const milliseconds = typeof value === 'string' ? parseGoDuration(value) : undefined;
  return milliseconds === undefined || milliseconds < 0 ? unfit(DURATION) : read(milliseconds);
};

/** Reads every item, and reports what is wrong with each of them. */
function listOf<Value>(item: Reader<Value>): Reader<readonly Value[]> {
  return (value) => {
    if (!Array.isArray(value)) return unfit('a list');
    const items = value.map((each) => item(each));
    const faults = items.flatMap((each, index) =>
      each.kind === 'read' ? [] : each.faults.map(({ path, expected }) => ({ path: [index, ...path], expected })),
    );
    return faults.length > 0
      ? { kind: 'unfit', faults }
      : read(items.flatMap((each) => (each.kind === 'read' ? [each.value] : [])));
  };
}

/** Reads every member, and reports what is wrong with each of them. `undefined` leaves a member out. */
export function mapOf<Value>(
  member: (value: unknown, key: string) => Read<Value | undefined>,
): Reader<Readonly<Record<string, Value>>> {
  return (value) => {
    if (!isJsonObject(value)) return unfit('a map');
    const faults: ReadFault[] = [];
    const members: [string, Value][] = [];
    for (const [key, each] of Object.entries(value)) {
      const found = member(each, key);
      if (found.kind === 'unfit') {
        faults.push(...found.faults.map(({ path, expected }) => ({ path: [key, ...path], expected })));
      } else if (found.value !== undefined) members.push([key, found.value]);
    }
    return faults.length > 0 ? { kind: 'unfit', faults } : read(Object.fromEntries(members));
  };
}

export const textMap = mapOf<string>((value) => text(value));
export const flagMap = mapOf<boolean>((value) => flag(value));

/** Resources that can be reserved (pkg/kubelet, parseResourceList). */
const RESERVABLE = ['cpu', 'memory', 'ephemeral-storage', 'pid'];

/** Quantities. A YAML document may have them as plain numbers. */
export const reservation = mapOf<string>((value, key) => {
  if (!RESERVABLE.includes(key)) return unfit(`one of the resources ${RESERVABLE.join(', ')}`);
  const written = typeof value === 'number' ? String(value) : value;
  const parsed = typeof written === 'string' ? parseQuantity(written) : undefined;
  return parsed?.kind === 'parsed' && parsed.quantity.nanos >= 0n
    ? read(written as string)
    : unfit('a quantity such as 500m or 100Mi, not negative');
});

/** A quantity or a percentage. 0% and 100% disable a threshold, as upstream. */
function threshold(value: unknown): Read<ThresholdValue | undefined> {
  const expected = 'a quantity above 0 such as 100Mi, or a percentage from 0% to 100%';
  if (typeof value !== 'string' && typeof value !== 'number') return unfit(expected);
  const written = String(value);
  if (written === '0%' || written === '100%') return read(undefined);
  return amount(written, expected);
}

/** A quantity or percentage above 0. */
function amount(written: string, expected: string): Read<ThresholdValue> {
  if (written.endsWith('%')) {
    const percent = Number(/^(\d{1,3}(?:\.\d+)?)%$/.exec(written)?.[1] ?? 0);
    return percent > 0 && percent <= 100 ? read({ kind: 'percent', percent }) : unfit(expected);
  }
  const parsed = parseQuantity(written);
  if (parsed.kind === 'malformed' || parsed.quantity.nanos <= 0n) return unfit(expected);
  return read({ kind: 'quantity', value: Number(parsed.quantity.nanos) / 1e9 });
}

/** Signals of upstream that this agent does not measure. They are accepted and have no effect. */
const UNMEASURED_SIGNALS = ['allocatableMemory.available', 'containerfs.available', 'containerfs.inodesFree'];

export const evictionThresholds = (measured: readonly string[]) =>
  mapOf<ThresholdValue>((value, key) => {
    if (UNMEASURED_SIGNALS.includes(key)) return read(undefined);
    return measured.includes(key) ? threshold(value) : unfit(`one of the signals ${measured.join(', ')}`);
  });

/** evictionMinimumReclaim: a quantity, which may be 0, or a percentage above 0. */
export const minimumReclaims = (measured: readonly string[]) =>
  mapOf<ThresholdValue>((value, key) => {
    if (UNMEASURED_SIGNALS.includes(key)) return read(undefined);
    if (!measured.includes(key)) return unfit(`one of the signals ${measured.join(', ')}`);
    const expected = 'a quantity such as 500Mi, or a percentage above 0% and up to 100%';
    if (typeof value !== 'string' && typeof value !== 'number') return unfit(expected);
    const parsed = parseQuantity(String(value));
    return parsed.kind === 'parsed' && parsed.quantity.nanos === 0n ? read(undefined) : amount(String(value), expected);
  });

/** By signal, in milliseconds. */
export const signalDurations = (measured: readonly string[]) =>
  mapOf<number>((value, key) => {
    if (UNMEASURED_SIGNALS.includes(key)) return read(undefined);
    return measured.includes(key) ? duration(value) : unfit(`one of the signals ${measured.join(', ')}`);
  });

const priorityGrace: Reader<PriorityGrace> = (value) => {
  const expected = '{priority, shutdownGracePeriodSeconds}, both whole numbers, the seconds not negative';
  if (!isJsonObject(value)) return unfit(expected);
  const { priority, shutdownGracePeriodSeconds, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return unfit(NO_SUCH_FIELD, [unknown]);
  const [readPriority, seconds] = [wholeNumber()(priority), wholeNumber(0)(shutdownGracePeriodSeconds)];
  if (readPriority.kind === 'unfit' || seconds.kind === 'unfit') return unfit(expected);
  return read({ priority: readPriority.value, shutdownGracePeriodSeconds: seconds.value });
};
export const priorityGraces = listOf(priorityGrace);

/** Checks the shape only. The rules of taints check key, value and effect. */
const taint: Reader<Taint> = (value) => {
  if (!isJsonObject(value)) return unfit('a taint {key, value, effect}');
  for (const [key, each] of Object.entries(value)) {
    if (!['key', 'value', 'effect', 'timeAdded'].includes(key)) return unfit(NO_SUCH_FIELD, [key]);
    if (typeof each !== 'string') return unfit('text', [key]);
  }
  return read(value as unknown as Taint);
};
export const taints = listOf(taint);

const RELAY_FILES = ['certificateFile', 'privateKeyFile'] as const;
export const relaySettings: Reader<RelayConfig> = (value) => {
  if (!isJsonObject(value)) return unfit('{port, certificateFile, privateKeyFile}');
  const { port, address = '', certificateFile, privateKeyFile, ...others } = value;
  const faults: ReadFault[] = Object.keys(others).map((key) => ({ path: [key], expected: NO_SUCH_FIELD }));
  const readPort = wholeNumber(1, 65_535)(port);
  if (readPort.kind === 'unfit') faults.push({ path: ['port'], expected: 'a port, a whole number from 1 to 65535' });
  if (typeof address !== 'string') faults.push({ path: ['address'], expected: 'the address to listen on' });
  for (const key of RELAY_FILES) {
    const path = value[key];
    if (typeof path !== 'string' || !path.startsWith('/')) faults.push({ path: [key], expected: 'an absolute path' });
  }
  if (readPort.kind === 'unfit' || faults.length > 0) return { kind: 'unfit', faults };
  const texts = { address, certificateFile, privateKeyFile } as Omit<RelayConfig, 'port'>;
  return read({ ...texts, port: readPort.value });
};

export type WitnessSettings = WitnessConfig & { readonly enabled: boolean };
/** What is not configured. */
export const DEFAULT_WITNESS: WitnessSettings = { enabled: true, address: '', port: 7_445 };

export const witnessSettings: Reader<WitnessSettings> = (value) => {
  if (!isJsonObject(value)) return unfit('{enabled, port, address}');
  const { enabled, port, address, ...others } = { ...DEFAULT_WITNESS, ...value };
  const faults: ReadFault[] = Object.keys(others).map((key) => ({ path: [key], expected: NO_SUCH_FIELD }));
  const readPort = wholeNumber(1, 65_535)(port);
  if (readPort.kind === 'unfit') faults.push({ path: ['port'], expected: 'a port, a whole number from 1 to 65535' });
  if (typeof enabled !== 'boolean') faults.push({ path: ['enabled'], expected: 'true or false' });
  if (typeof address !== 'string') faults.push({ path: ['address'], expected: 'the address to listen on' });
  return readPort.kind === 'unfit' || faults.length > 0
    ? { kind: 'unfit', faults }
    : read({ enabled, port: readPort.value, address });
};
type ServicesSettings = Omit<ServicesConfig, 'clusterDomain'> & { readonly enabled: boolean };
/** Fields that are not configured. The address is that of Kubernetes' own cache of names on machines. */
const DEFAULT_SERVICES: ServicesSettings = { enabled: false, endpoints: 'zone', dnsAddress: '169.254.20.10' };

export const servicesSettings: Reader<ServicesSettings> = (value) => {
  if (!isJsonObject(value)) return unfit('{enabled, endpoints, dnsAddress}');
  const { enabled, endpoints, dnsAddress, ...others } = { ...DEFAULT_SERVICES, ...value };
  const faults: ReadFault[] = Object.keys(others).map((key) => ({ path: [key], expected: NO_SUCH_FIELD }));
  if (typeof enabled !== 'boolean') faults.push({ path: ['enabled'], expected: 'true or false' });
  if (endpoints !== 'zone' && endpoints !== 'all') faults.push({ path: ['endpoints'], expected: 'zone or all' });
  const address = typeof dnsAddress === 'string' ? parseIp(dnsAddress) : undefined;
  if (address === undefined || isUnspecified(address) || isLoopback(address) || isMulticast(address)) {
    faults.push({ path: ['dnsAddress'], expected: 'an address that pods can reach, such as 169.254.20.10' });
  }
  return faults.length > 0 ? { kind: 'unfit', faults } : read({ enabled, endpoints, dnsAddress: address?.text ?? '' });
};

const ENFORCEMENTS = ['none', 'pods', 'system-reserved', 'kube-reserved'];

/** enforceNodeAllocatable. Groups of the system are not ours, so only `pods` has an effect. */
export const enforcements = listOf<string>((value) =>
  ENFORCEMENTS.includes(value as string) ? read(value as string) : unfit(`one of ${ENFORCEMENTS.join(', ')}`),
);

/** The text of a flag. */
export const flagText: Reader<boolean> = (value) => {
  const parsed = parseGoBoolean(value as string);
  return parsed === undefined ? unfit('true or false') : read(parsed);
};

export const wholeNumberText =
  (minimum: number, maximum: number): Reader<number> =>
  (value) =>
    wholeNumber(minimum, maximum)(/^-?\d+$/.test(value as string) ? Number(value) : undefined);

/** `key=value,key=value`; a key without `=` has the empty value. */
export const labelsText: Reader<Readonly<Record<string, string>>> = (value) => {
  const items = (value as string).split(',').map((item) => item.trim());
  const labels = items
    .filter((item) => item !== '')
    .map((item): [string, string] => {
      const equals = item.indexOf('=');
      return equals < 0 ? [item, ''] : [item.slice(0, equals).trim(), item.slice(equals + 1).trim()];
    });
  return read(Object.fromEntries(labels));
};

/** `key=value:Effect` or `key:Effect`, with commas between. */
export const taintsText: Reader<readonly Taint[]> = (value) => {
  const items = (value as string)
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  const parsed = items.map((item): Taint | undefined => {
    const match = /^([^=:]+)(?:=([^:]*))?:([^:]+)$/.exec(item);
    if (match === null) return undefined;
    const [, key = '', taintValue, effect = ''] = match;
    const valued = taintValue === undefined || taintValue === '' ? {} : { value: taintValue };
    return { key, ...valued, effect: effect as TaintEffect };
  });
  const taintsRead = parsed.filter((each) => each !== undefined);
  return taintsRead.length === items.length ? read(taintsRead) : unfit('key=value:Effect, with commas between');
};
