import { DryRunDestination } from '../langfuse/dry-run-destination.js';
import { Courier } from './delivery.js';

/** Takes all that is sent and brings it nowhere, for whoever only wants to know what would be. */
export const NOTHING_SENT = new Courier(new DryRunDestination()).delivery(() => Number.POSITIVE_INFINITY);
