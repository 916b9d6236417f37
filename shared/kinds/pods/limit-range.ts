/**
 * LimitRanges: amounts that containers get by default, and bounds of what objects request. Pure. Source:
 * plugin/pkg/admission/limitranger/admission.go.
 */

import { compareQuantities, formatQuantity, type Quantity } from '../../kubernetes/quantity.ts';
import { type Amounts, add, amountsOf, highest, only } from '../quotas/amounts.ts';
import type {
  Container,
  KubeLimitRange,
  KubeObject,
  KubePod,
  LimitRangeItem,
  PersistentVolumeClaimSpec,
  PodSpec,
  ResourceList,
} from '../types.ts';

/** Names the amounts that a LimitRange set. */
const ANNOTATION = 'kubernetes.io/limit-ranger';

const limitsOf = ({ spec }: KubeLimitRange): readonly LimitRangeItem[] => spec?.limits ?? [];

interface Defaulted {
  readonly container: Container;
  /** What was set, for the annotation. */
  readonly notes: readonly string[];
}

function withDefaults(container: Container, defaults: LimitRangeItem, kind: string): Defaulted {
  const { requests = {}, limits = {}, ...resources } = container.resources ?? {};
  const added = (given: ResourceList, from: ResourceList = {}): ResourceList =>
    Object.fromEntries(Object.entries(from).filter(([name]) => !(name in given)));
  const [moreRequests, moreLimits] = [added(requests, defaults.defaultRequest), added(limits, defaults.default)];
  const notes = [
    { more: moreRequests, what: 'request' },
    { more: moreLimits, what: 'limit' },
  ].flatMap(({ more, what }) => {
    const names = Object.keys(more).sort().join(', ');
    return names === '' ? [] : [`${names} ${what} for ${kind} ${container.name ?? ''}`];
  });
  if (notes.length === 0) return { container, notes };
  return {
    container: {
      ...container,
      resources: { ...resources, limits: { ...limits, ...moreLimits }, requests: { ...requests, ...moreRequests } },
    },
    notes,
  };
}

/** The pod with the defaults of the LimitRanges of its namespace. The first LimitRange that sets an amount decides. */
export function withLimitDefaults(pod: KubePod, ranges: readonly KubeLimitRange[]): KubePod {
  let next = pod;
  for (const range of ranges) {
    const defaults = limitsOf(range).filter(({ type }) => type === 'Container');
    if (defaults.length === 0) continue;
    const merged: LimitRangeItem = {
      default: Object.assign({}, ...defaults.map((each) => each.default)),
      defaultRequest: Object.assign({}, ...defaults.map((each) => each.defaultRequest)),
    };
    const spec: PodSpec = next.spec ?? {};
    const containers = (spec.containers ?? []).map((each) => withDefaults(each, merged, 'container'));
    const first = (spec.initContainers ?? []).map((each) => withDefaults(each, merged, 'init container'));
    const notes = [...containers, ...first].flatMap((each) => each.notes);
    if (notes.length === 0) continue;
    const annotations = {
      ...next.metadata.annotations,
      [ANNOTATION]: `LimitRanger plugin set: ${notes.join('; ')}`,
    };
    next = {
      ...next,
      metadata: { ...next.metadata, annotations },
      spec: {
        ...spec,
        containers: containers.map(({ container }) => container),
        ...(first.length === 0 ? {} : { initContainers: first.map(({ container }) => container) }),
      },
    };
  }
  return next;
}

interface Observed {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

interface Bound {
  readonly type: string;
  readonly name: string;
  readonly amount: Quantity;
}

const isLess = (one: Quantity, other: Quantity): boolean => compareQuantities(one, other) < 0;

function belowMin({ type, name, amount }: Bound, { requests, limits }: Observed): string | undefined {
  const text = `minimum ${name} usage per ${type} is ${formatQuantity(amount)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (request === undefined) return `${text}.  No request is specified`;
  if (isLess(request, amount)) return `${text}, but request is ${formatQuantity(request)}`;
  if (limit !== undefined && isLess(limit, amount)) return `${text}, but limit is ${formatQuantity(limit)}`;
  return undefined;
}

function aboveMax({ type, name, amount }: Bound, { requests, limits }: Observed): string | undefined {
  const text = `maximum ${name} usage per ${type} is ${formatQuantity(amount)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (limit === undefined) return `${text}.  No limit is specified`;
  if (isLess(amount, limit)) return `${text}, but limit is ${formatQuantity(limit)}`;
  if (request !== undefined && isLess(amount, request)) return `${text}, but request is ${formatQuantity(request)}`;
  return undefined;
}

/** A claim has no limits. */
function claimAboveMax({ type, name, amount }: Bound, { requests }: Observed): string | undefined {
  const text = `maximum ${name} usage per ${type} is ${formatQuantity(amount)}`;
  const request = requests.get(name);
  if (request === undefined) return `${text}.  No request is specified`;
  return isLess(amount, request) ? `${text}, but request is ${formatQuantity(request)}` : undefined;
}

function aboveRatio({ type, name, amount }: Bound, { requests, limits }: Observed): string | undefined {
  const text = `${name} max limit to request ratio per ${type} is ${formatQuantity(amount)}`;
  const [request, limit] = [requests.get(name), limits.get(name)];
  if (request === undefined || request.nanos === 0n) {
    return `${text}, but no request is specified or request is 0`;
  }
  if (limit === undefined || limit.nanos === 0n) return `${text}, but no limit is specified or limit is 0`;
  // limit / request > amount, in whole numbers.
  if (limit.nanos * 1_000_000_000n <= amount.nanos * request.nanos) return undefined;
  return `${text}, but provided ratio is ${(Number(limit.nanos) / Number(request.nanos)).toFixed(6)}`;
}

type Check = (bound: Bound, observed: Observed) => string | undefined;

function violations(
  item: LimitRangeItem,
  observed: Observed,
  checks: Partial<Record<'min' | 'max' | 'maxLimitRequestRatio', Check>>,
): readonly string[] {
  return (['min', 'max', 'maxLimitRequestRatio'] as const).flatMap((bounds) => {
    const check = checks[bounds];
    if (check === undefined) return [];
    const amounts = [...amountsOf(item[bounds])].sort(([one], [other]) => (one < other ? -1 : 1));
    return amounts.flatMap(([name, amount]) => check({ type: item.type ?? '', name, amount }, observed) ?? []);
  });
}

const OF_PODS = { min: belowMin, max: aboveMax, maxLimitRequestRatio: aboveRatio };

const observedOf = ({ resources }: Container): Observed => ({
  requests: amountsOf(resources?.requests),
  limits: amountsOf(resources?.limits),
});

/** Amounts that all of the containers state are added. An init container counts if it needs more. */
function totalOf({ containers = [], initContainers = [] }: PodSpec, amountsIn: (of: Observed) => Amounts): Amounts {
  const lists = containers.map((each) => amountsIn(observedOf(each)));
  const [first, ...rest] = lists;
  const common = [...(first ?? new Map()).keys()].filter((name) => rest.every((list) => list.has(name)));
  const total = lists.reduce((sum, list) => add(sum, only(list, common)), new Map() as Amounts);
  return initContainers.map((each) => amountsIn(observedOf(each))).reduce(highest, total);
}

function podViolations(range: KubeLimitRange, { spec = {} }: KubePod): readonly string[] {
  return limitsOf(range).flatMap((item) => {
    if (item.type === 'Container') {
      const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
      return containers.flatMap((each) => violations(item, observedOf(each), OF_PODS));
    }
    if (item.type !== 'Pod') return [];
    const total = {
      requests: totalOf(spec, ({ requests }) => requests),
      limits: totalOf(spec, ({ limits }) => limits),
    };
    return violations(item, total, OF_PODS);
  });
}

function claimViolations(range: KubeLimitRange, spec: PersistentVolumeClaimSpec = {}): readonly string[] {
  const observed = { requests: amountsOf(spec.resources?.requests), limits: new Map() };
  return limitsOf(range).flatMap((item) =>
    item.type === 'PersistentVolumeClaim' ? violations(item, observed, { min: belowMin, max: claimAboveMax }) : [],
  );
}

/** Kinds that LimitRanges are about, by plural name. */
export const isLimited = (group: string, resource: string): boolean =>
  group === '' && (resource === 'pods' || resource === 'persistentvolumeclaims');

/** Why the object may not be created; the text of a 403. undefined: every LimitRange permits it. */
export function limitViolation(
  resource: string,
  object: KubeObject,
  ranges: readonly KubeLimitRange[],
): string | undefined {
  for (const range of ranges) {
    const found = resource === 'pods' ? podViolations(range, object) : claimViolations(range, object.spec);
    const different = [...new Set(found)];
    if (different.length === 1) return different[0];
    if (different.length > 1) return `[${different.join(', ')}]`;
  }
  return undefined;
}
