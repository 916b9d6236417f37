import { sqsPartQueue } from '../../shared/adapters/aws-json/part-queue.ts';
import { queueConnectionFrom } from '../../shared/adapters/aws-json/sqs-call.ts';
import { loadConfig, markerConfig } from '../../shared/config/environment.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export function composeNodeMarker(environment: Environment) {
  const config = loadConfig(markerConfig, environment);
  const queue = sqsPartQueue(queueConnectionFrom(environment, config.partQueueUrl));
  const { onMarkPart } = composeControllers(environment, config, () => ({ partQueue: queue }));
  return { onMarkPart, queue };
}
