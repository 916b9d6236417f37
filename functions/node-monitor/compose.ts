import { sqsPartQueue } from '../../shared/adapters/aws-json/part-queue.ts';
import { queueConnectionFrom } from '../../shared/adapters/aws-json/sqs-call.ts';
import { sqsTickQueue } from '../../shared/adapters/aws-json/tick-queue.ts';
import { lambdaConnectionFrom, lambdaWaker } from '../../shared/adapters/lambda/function-waker.ts';
import { everyProbe } from '../../shared/adapters/probe/every-probe.ts';
import { leaseProbe } from '../../shared/adapters/probe/lease-probe.ts';
import { probeTokens } from '../../shared/adapters/tokens/probe-tokens.ts';
import { processKeys } from '../../shared/adapters/tokens/process-keys.ts';
import { loadConfig, monitorConfig } from '../../shared/config/environment.ts';
import { onTickMessage, type TickMessageKind } from '../../shared/controllers/node-monitor/tick-message.ts';
import { workChecks } from '../../shared/controllers/work-checks.ts';
import { log } from '../../shared/observability/logger.ts';
import type { ItemStore } from '../../shared/ports/item-store.ts';
import { keepProbeKey } from '../../shared/store/process-key-store.ts';
import { composeDependencies, type Environment } from '../controllers.ts';
import { composeEventBus } from '../event-bus.ts';
import { systemClock } from '../system-clock.ts';

export function composeNodeMonitor(environment: Environment) {
  const config = loadConfig(monitorConfig, environment);
  const { policy, clusterId, probeUrls } = config;
  if (probeUrls.length === 0 && policy.ingestGate === 'on') {
    log.warn('no probe is configured: the safety gate cannot detect a failing heartbeat path');
  }
  const probeOptions = (items: ItemStore) => {
    if (probeUrls.length === 0) return {};
    const credentials = probeTokens({ keys: processKeys(keepProbeKey(items), log), clusterId });
    return { probe: everyProbe(probeUrls.map((url) => leaseProbe({ url, credentials, clock: systemClock }))) };
  };
  const queue = sqsTickQueue(queueConnectionFrom(environment, config.tickQueueUrl));
  const dependencies = composeDependencies(environment, config, (items) => ({
    ...probeOptions(items),
    ...composeEventBus(environment, config),
    tickQueue: queue,
    partQueue: sqsPartQueue(queueConnectionFrom(environment, config.partQueueUrl)),
    waker: lambdaWaker(lambdaConnectionFrom(environment), config.wakeFunctions),
  }));
  return {
    onTickMessage: (message: TickMessageKind, budgetMs: number) =>
      onTickMessage(dependencies, message, { budgetMs, checks: workChecks }),
    queue,
  };
}
