import { queueConnectionFrom, sqsPartQueue } from '../../shared/aws/connection/sqs.ts';
import { composeDependencies, type Environment } from '../../shared/aws/lambda/controllers.ts';
import { loadConfig, markerConfig } from '../../shared/config/environment.ts';
import { onMarkPart, type ReceivedPart } from './work.ts';

export function composeNodeMarker(environment: Environment) {
  const config = loadConfig(markerConfig, environment);
  const queue = sqsPartQueue(queueConnectionFrom(environment, config.partQueueUrl));
  const dependencies = { ...composeDependencies(environment, config), partQueue: queue };
  return { onMarkPart: (part: ReceivedPart) => onMarkPart(dependencies, part), queue };
}
