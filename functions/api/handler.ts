import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, LambdaFunctionURLEvent } from 'aws-lambda';
import { permittedResponse } from '../../shared/api/response-body.ts';
import { requestOfUrl, resultOf } from '../../shared/aws/http-event.ts';
import { composeApiFunction } from './compose.ts';

const api = composeApiFunction(process.env);

/**
 * From the HTTP API, and from the function's URL. The event does not say which, and the path of the first is decoded
 * already. To decode it again changes nothing: no name of Kubernetes has a `%` (upstream IsValidPathSegmentName).
 */
export const handler = async (
  event: APIGatewayProxyEventV2 | LambdaFunctionURLEvent,
): Promise<APIGatewayProxyStructuredResultV2> => resultOf(permittedResponse(await api(requestOfUrl(event))));
