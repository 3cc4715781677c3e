package dockerop

import (
	"encoding/json"
	"errors"
	"io"
)

// LastStatus reads the messages with which an engine answers a load or an import of an image,
// and returns the last status among them: after an import that is the image's ID. It is empty
// if there is none. An engine also reports a failure there, which is returned as an error.
func LastStatus(messages io.Reader) (string, error) {
	var last string
	for decoder := json.NewDecoder(messages); ; {
		var message struct {
			Status string `json:"status"`
			Error  string `json:"error"`
		}
		switch err := decoder.Decode(&message); {
		case errors.Is(err, io.EOF):
			return last, nil
		case err != nil:
			return "", err
		case message.Error != "":
			return "", errors.New(message.Error)
		case message.Status != "":
			last = message.Status
		}
	}
}
