import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { requestOf, resultOf } from '../../shared/aws/http-event.ts';
import { composeApiFunction } from './compose.ts';

const api = composeApiFunction(process.env);

export const handler = async (event: APIGatewayProxyEventV2): Promise<APIGatewayProxyStructuredResultV2> =>
  resultOf(await api(requestOf(event)));
