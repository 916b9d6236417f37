/**
 * Capacity of the machine, and the part that pods may use (pkg/kubelet/nodestatus/setters.go,
 * pkg/kubelet/cm/node_container_manager_linux.go, pkg/kubelet/cm/helpers.go).
 */

import type { NodeStatus } from '../../shared/kinds/types.ts';
import {
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
} from '../../shared/kubernetes/quantity.ts';
import { qualifiedNameErrors } from '../../shared/kubernetes/validate-metadata.ts';
import type { EvictionThresholds, ThresholdValue } from '../config.ts';

export type ResourceTexts = Readonly<Record<string, string>>;

const NANO = 1_000_000_000n;
const HUGE_PAGES = 'hugepages-';

export const isHugePages = (name: string): boolean => name.startsWith(HUGE_PAGES);

const quantityOf = (value: number | bigint, format: QuantityFormat): Quantity => ({
  nanos: BigInt(value) * NANO,
  format,
});

/** 0 for a text that is not a quantity; the text was validated earlier. */
function read(text: string | undefined): Quantity {
  const parsed = parseQuantity(text ?? '0');
  return parsed.kind === 'parsed' ? parsed.quantity : quantityOf(0, 'decimal');
}

/** Compares amounts: 1Gi is 1024Mi. Texts that are not quantities are compared as texts. */
export function sameQuantity(left: string | undefined, right: string | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  const [a, b] = [parseQuantity(left), parseQuantity(right)];
  return a.kind === 'parsed' && b.kind === 'parsed' ? compareQuantities(a.quantity, b.quantity) === 0 : left === right;
}

/** Never below zero. The result has the suffix family of the remainder. */
const subtract = (from: Quantity, nanos: bigint): Quantity => ({
  nanos: from.nanos > nanos ? from.nanos - nanos : 0n,
  format: from.format,
});

/**
 * A threshold as an amount of its resource. Percentages are computed with 32-bit floats, as upstream: 10 % of 100Gi is
 * 10737418400, not 10737418240.
 */
export function thresholdAmount(threshold: ThresholdValue, capacity: number): number {
  if (threshold.kind === 'quantity') return threshold.value;
  return Math.trunc(capacity * Math.fround(Math.fround(threshold.percent) / 100));
}

/** Resources with a hard eviction threshold that reserves them, and its signal. Other thresholds reserve nothing. */
const RESERVING_SIGNALS: Readonly<Record<string, string>> = {
  memory: 'memory.available',
  'ephemeral-storage': 'nodefs.available',
};

export interface ReservationSettings {
  readonly systemReserved: ResourceTexts;
  readonly kubeReserved: ResourceTexts;
  readonly evictionHard: EvictionThresholds;
}

/** The reservation of each resource in `capacity`: for the system, for Kubernetes, and for hard eviction. */
export function reservedOf(capacity: ResourceTexts, settings: ReservationSettings): Record<string, Quantity> {
  const reserved: Record<string, Quantity> = {};
  for (const [name, text] of Object.entries(capacity)) {
    const total = read(text);
    const signal = Object.hasOwn(RESERVING_SIGNALS, name) ? RESERVING_SIGNALS[name] : undefined;
    const threshold = signal === undefined ? undefined : settings.evictionHard[signal];
    const eviction = threshold === undefined ? 0 : thresholdAmount(threshold, Number(total.nanos / NANO));
    const nanos =
      read(settings.systemReserved[name]).nanos +
      read(settings.kubeReserved[name]).nanos +
      BigInt(Math.trunc(eviction)) * NANO;
    reserved[name] = { nanos, format: total.format };
  }
  return reserved;
}

/**
 * Why the machine is too small for its reservations; undefined if it is not. A kubelet does not start then
 * (validateNodeAllocatable in pkg/kubelet/cm/node_container_manager_linux.go).
 */
export function reservationFault(capacity: ResourceTexts, settings: ReservationSettings): string | undefined {
  const faults = Object.entries(reservedOf(capacity, settings))
    .filter(([name, reserved]) => compareQuantities(reserved, read(capacity[name])) > 0)
    .map(
      ([name, reserved]) =>
        `Resource ${JSON.stringify(name)} has a reservation of ${formatQuantity(reserved)} but capacity of ${capacity[name]}. Expected capacity >= reservation.`,
    );
  return faults.length === 0 ? undefined : `invalid Node Allocatable configuration. ${faults.join(' ')}`;
}

/** The part of the machine's facts that becomes capacity. */
export interface MachineResources {
  readonly cpuCores: number;
  readonly memoryBytes: number;
  /** Page size in bytes to the number of pages. */
  readonly hugePages: Readonly<Record<string, number>>;
}

export interface ResourceInput extends ReservationSettings {
  /** Undefined when the machine could not be read. */
  readonly machine: MachineResources | undefined;
  /** Size of the file system of the root directory; undefined when it could not be read. Bytes. */
  readonly rootFsBytes: number | undefined;
  readonly maxPods: number;
  /** 0: no limit per core. */
  readonly podsPerCore: number;
  readonly devices?: {
    readonly capacity: ResourceTexts;
    readonly allocatable: ResourceTexts;
    /** Resources without a plug-in any more: they stay in the list with amount 0. */
    readonly removed: readonly string[];
  };
}

function podCapacity(cpuCores: number, maxPods: number, podsPerCore: number): number {
  return podsPerCore > 0 ? Math.min(cpuCores * podsPerCore, maxPods) : maxPods;
}

/** The resource name of huge pages of one size, such as hugepages-2Mi. */
const hugePagesName = (pageBytes: number): string => `${HUGE_PAGES}${formatQuantity(quantityOf(pageBytes, 'binary'))}`;

/** Huge pages of the machine by resource name, in bytes. */
function hugePageCapacity(hugePages: Readonly<Record<string, number>>): Record<string, string> {
  const sizes = Object.entries(hugePages).map(([pageBytes, pages]): [string, string] => [
    hugePagesName(Number(pageBytes)),
    formatQuantity(quantityOf(BigInt(pageBytes) * BigInt(pages), 'binary')),
  ]);
  return Object.fromEntries(sizes);
}

/** Capacity of the node. Keys set by other clients are kept. */
function capacityOf(existing: ResourceTexts | undefined, input: ResourceInput): Record<string, string> {
  const capacity: Record<string, string> = { ...existing };
  const { machine, devices } = input;
  if (machine === undefined) return { ...capacity, cpu: '0', memory: '0', pods: String(input.maxPods) };
  capacity['cpu'] = formatQuantity(quantityOf(machine.cpuCores, 'decimal'));
  capacity['memory'] = formatQuantity(quantityOf(machine.memoryBytes, 'binary'));
  capacity['pods'] = String(podCapacity(machine.cpuCores, input.maxPods, input.podsPerCore));
  Object.assign(capacity, hugePageCapacity(machine.hugePages));
  if (input.rootFsBytes !== undefined) {
    capacity['ephemeral-storage'] = formatQuantity(quantityOf(input.rootFsBytes, 'binary'));
  }
  Object.assign(capacity, devices?.capacity);
  for (const removed of devices?.removed ?? []) capacity[removed] = '0';
  return capacity;
}

/**
 * Whether this is an extended resource: not a native resource, not a quota, and with a name that a quota may have
 * (pkg/apis/core/v1/helper/helpers.go).
 */
export const isExtendedResource = (name: string): boolean =>
  name.includes('/') &&
  !name.includes('kubernetes.io/') &&
  !name.startsWith('requests.') &&
  qualifiedNameErrors(`requests.${name}`).length === 0;

/** What pods may use: capacity minus reservations; for memory also minus huge pages. */
function allocatableOf(
  existing: ResourceTexts | undefined,
  capacity: ResourceTexts,
  input: ResourceInput,
): Record<string, string> {
  const amounts = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(existing ?? {})) {
    if (!Object.hasOwn(capacity, name) && isExtendedResource(name)) continue;
    amounts.set(name, read(text));
  }
  const reserved = reservedOf(capacity, input);
  for (const [name, text] of Object.entries(capacity)) {
    amounts.set(name, subtract(read(text), reserved[name]?.nanos ?? 0n));
  }
  for (const [name, text] of Object.entries(input.devices?.allocatable ?? {})) amounts.set(name, read(text));
  const memory = amounts.get('memory');
  if (memory !== undefined) {
    const hugePages = Object.entries(capacity)
      .filter(([name]) => isHugePages(name))
      .reduce((sum, [, text]) => sum + read(text).nanos, 0n);
    amounts.set('memory', subtract(memory, hugePages));
  }
  return Object.fromEntries([...amounts].map(([name, amount]) => [name, formatQuantity(amount)]));
}

/** Capacity and allocatable of a node, from its previous status and from the machine. */
export function nodeResources(
  status: Pick<NodeStatus, 'capacity' | 'allocatable'> | undefined,
  input: ResourceInput,
): { capacity: Record<string, string>; allocatable: Record<string, string> } {
  const capacity = capacityOf(status?.capacity, input);
  return { capacity, allocatable: allocatableOf(status?.allocatable, capacity, input) };
}
