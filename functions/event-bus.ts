/** Composes the event bus of the cluster, if one is configured. Functions that publish events use it. */
import { eventBridgeBus, eventBusConnectionFrom } from '../shared/adapters/aws-json/put-events.ts';
import type { EventBus } from '../shared/ports/event-bus.ts';
import type { Environment } from './controllers.ts';

export const composeEventBus = (
  environment: Environment,
  { clusterId, eventBusName }: { readonly clusterId: string; readonly eventBusName?: string },
): { readonly eventBus?: EventBus } =>
  eventBusName === undefined
    ? {}
    : { eventBus: eventBridgeBus(eventBusConnectionFrom(environment, eventBusName), clusterId) };
