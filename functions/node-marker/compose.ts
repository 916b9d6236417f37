import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { queueConnectionFrom, sqsPartQueue } from '../../shared/aws/sqs.ts';
import { loadConfig, markerConfig } from '../../shared/config/environment.ts';
import { onMarkPart, type ReceivedPart } from './work.ts';

export function composeNodeMarker(environment: Environment) {
  const config = loadConfig(markerConfig, environment);
  const queue = sqsPartQueue(queueConnectionFrom(environment, config.partQueueUrl));
  const dependencies = { ...composeDependencies(environment, config), partQueue: queue };
  return { onMarkPart: (part: ReceivedPart) => onMarkPart(dependencies, part), queue };
}
