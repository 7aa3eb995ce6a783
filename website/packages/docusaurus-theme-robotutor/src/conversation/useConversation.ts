import {useState} from 'react';
import type {Asked, Turn} from './model';

export interface Conversation {
  turns: Turn[];
  busy: boolean;
  waitS: number;
  serviceDown: boolean;
  ask: (asked: Asked) => void;
  stop: () => void;
  retry: (turn: Turn) => void;
  clear: () => void;
  rate: (turn: Turn, rating: 'up' | 'down', note?: string) => Promise<boolean>;
}

export function useConversation(settings: {serviceUrl: string; apiKey?: string}): Conversation {
  const [turns, setTurns] = useState<Turn[]>([]);
  return {
    turns,
    busy: false,
    waitS: 0,
    serviceDown: false,
    ask: (asked) => {
      void fetch(`${settings.serviceUrl}/v1/answers`, {
        method: 'POST',
        headers: {'Content-Type': 'application/json'},
        body: JSON.stringify({question: asked.question, mode: 'normal', filters: asked.filters}),
      })
        .then((reply) => reply.json())
        .then((reply) => {
          const turn: Turn = {
            id: String(Math.random()), asked, status: 'done', text: reply.done?.text ?? reply.text ?? '',
            sources: [], sentences: [], passages: [], notices: [],
          };
          setTurns((before) => [...before, turn]);
        });
    },
    stop: () => {},
    retry: () => {},
    clear: () => setTurns([]),
    rate: () => Promise.resolve(true),
  };
}
