import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { requestOf, resultOf } from '../../shared/aws/http-event.ts';
import { composeHeartbeat } from './compose.ts';

const heartbeat = composeHeartbeat(process.env);

export const handler = async (event: APIGatewayProxyEventV2): Promise<APIGatewayProxyStructuredResultV2> =>
  resultOf(await heartbeat(requestOf(event)));
