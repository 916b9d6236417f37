/**
 * The resources of a container that count on its node and in quotas, while the node changes them: the highest of what
 * the spec wants, what the node promised and what the container has.
 *
 * Source: staging/src/k8s.io/component-helpers/resource/helpers.go (determineEffectiveRequests).
 */
import { compareQuantities, parseQuantity } from '../../kubernetes/quantity.ts';
import type { Container, KubePod, ResourceList } from '../types.ts';

export interface CountedResources {
  readonly requests?: ResourceList | undefined;
  readonly limits?: ResourceList | undefined;
}

function isMore(text: string, than: string): boolean {
  const [one, other] = [parseQuantity(String(text)), parseQuantity(String(than))];
  return one.kind === 'parsed' && other.kind === 'parsed' && compareQuantities(one.quantity, other.quantity) > 0;
}

function highestOf(lists: readonly (ResourceList | undefined)[]): ResourceList {
  const highest: ResourceList = {};
  for (const list of lists) {
    for (const name in list) {
      const [amount, known] = [list[name]!, highest[name]];
      if (known === undefined || (known !== amount && isMore(amount, known))) highest[name] = amount;
    }
  }
  return highest;
}

/** A node that can never do a resize keeps the resources that the container has. */
const isInfeasible = ({ status }: KubePod): boolean =>
  status?.conditions?.find(({ type }) => type === 'PodResizePending')?.reason === 'Infeasible';

/** An init container counts by its spec, unless it is a sidecar. */
export function countedResources(pod: KubePod): (container: Container) => CountedResources {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  // A pod may have thousands of containers: none is searched for.
  const [own, first] = [containerStatuses, initContainerStatuses].map(
    (statuses) => new Map(statuses.map((each) => [each.name, each])),
  );
  const keepsFormer = isInfeasible(pod);
  return ({ name, restartPolicy, resources = {} }) => {
    const found = own!.get(name) ?? (restartPolicy === 'Always' ? first!.get(name) : undefined);
    if (found?.resources === undefined) return resources;
    const wanted = keepsFormer ? {} : resources;
    return {
      requests: highestOf([wanted.requests, found.resources.requests, found.allocatedResources]),
      limits: highestOf([wanted.limits, found.resources.limits]),
    };
  };
}

/** What counts, as a text. Two states of a pod with the same text count the same. */
export function countedText(pod: KubePod): string {
  const { spec, status } = pod;
  return JSON.stringify([
    [spec?.containers, spec?.initContainers].map((list) => list?.map(({ resources }) => resources)),
    [status?.containerStatuses, status?.initContainerStatuses].map((list) =>
      list?.map(({ name, resources, allocatedResources }) => resources && [name, resources, allocatedResources]),
    ),
    isInfeasible(pod),
  ]);
}
