/** Composes the event bus of the cluster, if one is configured. Functions that publish events use it. */

import type { EventBus } from '../events/event-bus.ts';
import type { Environment } from './controllers.ts';
import { eventBridgeBus, eventBusConnectionFrom } from './put-events.ts';

export const composeEventBus = (
  environment: Environment,
  { clusterId, eventBusName }: { readonly clusterId: string; readonly eventBusName?: string },
): { readonly eventBus?: EventBus } =>
  eventBusName === undefined
    ? {}
    : { eventBus: eventBridgeBus(eventBusConnectionFrom(environment, eventBusName), clusterId) };
