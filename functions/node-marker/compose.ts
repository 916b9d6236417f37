import { sqsPartQueue } from '../../shared/adapters/aws-json/part-queue.ts';
import { queueConnectionFrom } from '../../shared/adapters/aws-json/sqs-call.ts';
import { loadConfig, markerConfig } from '../../shared/config/environment.ts';
import { onMarkPart, type ReceivedPart } from '../../shared/controllers/node-marker/reconcile.ts';
import { composeDependencies, type Environment } from '../controllers.ts';

export function composeNodeMarker(environment: Environment) {
  const config = loadConfig(markerConfig, environment);
  const queue = sqsPartQueue(queueConnectionFrom(environment, config.partQueueUrl));
  const dependencies = composeDependencies(environment, config, () => ({ partQueue: queue }));
  return { onMarkPart: (part: ReceivedPart) => onMarkPart(dependencies, part), queue };
}
